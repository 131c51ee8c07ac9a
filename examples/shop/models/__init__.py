"""What qmf-codegen makes of the schemas."""
