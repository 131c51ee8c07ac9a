"""Text of results, and what terminals need for it.

`layout` computes widths, `text_lines` makes lines for people, with the colours of
`styles` and the plots of `plot`; `json_lines` and `csv_lines` make lines for programs, `event_lines` those of
`qmf-printevents`. `progress_line` shows the progress of long commands, `transcript` writes a copy to a file.
"""
