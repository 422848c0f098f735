"""Process groups on real ranks: the rendezvous, the devices, the groups of a layout."""
