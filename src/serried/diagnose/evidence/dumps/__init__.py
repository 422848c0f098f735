"""Flight-recorder dumps: the last collectives and messages that torch kept of a rank."""
