"""What the pages show, as values: rows, forms, plots, addresses. Pure functions; knows neither browser nor NiceGUI."""

from __future__ import annotations
