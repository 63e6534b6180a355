"""Result -> figures for the paper: vector PDF and PNG, readable without colour. matplotlib is imported late."""
