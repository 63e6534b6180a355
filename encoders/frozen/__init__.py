"""States of a frozen backbone, computed once and kept on disk."""
