"""The only way to the nodes of a broker: each change and each grant has a principal, and the policy is asked first."""
