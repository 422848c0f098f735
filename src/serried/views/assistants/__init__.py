"""What assistants ask of serried over the Model Context Protocol: commands as tools."""
