"""What a notebook shows of a value: a picture that needs nothing, and a view that selects.

serried.layout(…)        its picture and tables as HTML, which an exported notebook keeps
serried.view(layout)     the same picture, live: select a rank here, read ``view.selected`` there
layout.table()           rows for pandas, Polars or Arrow
"""
