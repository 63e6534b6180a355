"""Hidden states and roles in, one vector a text out. One design = one file here = one YAML in conf/pooler."""
