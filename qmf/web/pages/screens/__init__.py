"""The pages in the browser, with NiceGUI: each shows values of `qmf.web.pages.views` and keeps them new."""

from __future__ import annotations
