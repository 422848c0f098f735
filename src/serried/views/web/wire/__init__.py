"""How the page and the server speak: addresses, dropped files, binary payloads."""
