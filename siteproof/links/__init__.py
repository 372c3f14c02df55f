"""Every pair of nodes of a link, and which nodes explain the bad ones."""
