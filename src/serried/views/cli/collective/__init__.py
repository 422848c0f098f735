"""The command ``serried collective``: a collective drawn, priced, or tried on real ranks."""
