"""The jobs: config in, one call into `trust`. Run each as `python -m jobs.NAME key=value ...`."""
