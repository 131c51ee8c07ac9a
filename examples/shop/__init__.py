"""A shop whose tills can be managed: the application of the tutorial in docs/agent.md.

Run ``python -m shop`` in the parent of this folder, and look at it with ``qmf-shell``. ``shop.xml`` is the schema;
``qmf-codegen shop/shop.xml -o shop/models`` generates ``models`` from it.
"""
