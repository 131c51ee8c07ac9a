"""A shop whose tills can be managed: the application of the tutorial in docs/agent.md.

In this folder's parent: ``python -m shop``; then ``qmf-shell`` shows what happens. ``shop.xml`` is the schema, and
``models`` is what qmf-codegen makes of it: ``qmf-codegen shop/shop.xml -o shop/models``.
"""
