"""From a record to its incidents: what broke, whose it is, since when, and what may be done now.

`sources` read what a folder or a backend holds into calls and events, `index` keeps them findable,
`incidents` joins them. The records in between (`model`) are the language of every door: the
terminal, `--json` and the HTML report say the same from the same values.
"""
