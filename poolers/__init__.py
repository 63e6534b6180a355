"""Hidden states and roles in, one vector per text out. One design = one file here = one YAML in conf/pooler."""
