"""How near planned steps come to measured ones, and the fit of the constants they are planned by.

``python -m benchmarks.accuracy FOLDER`` prints one line a table of the folder: mean, median, 90th
percentile, largest error and bias of the step time, beside simple baselines fitted to those rows.
"""
