"""What commands return: values, not text. `render` turns them into text for people, or into JSON or CSV for programs.

`result` has tables, plots, streams and so on; `cells` has their contents. Neither knows terminals or the bus.
"""
