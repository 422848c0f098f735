"""ByteDance's StragglerAnalysis: its tables, the rules between operations, and their Trace."""
