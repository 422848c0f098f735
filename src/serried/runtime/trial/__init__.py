"""Tries collectives on real ranks: their steps by send and receive, beside torch's own."""
