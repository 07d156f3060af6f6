"""Reading files as people have them into the tables `samples`, `responses` and `failed`.

`plan` cuts files into units without parsing them, `worker` turns a unit into tables, `duplicates` settles rows that
share a key once all units are done.
"""

from trust.prepare.config import DataConfig

__all__ = ["DataConfig"]
