"""What libraries print of calls over ranks: time-outs, checks, lists of calls, who is missing."""
