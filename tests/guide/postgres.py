#!/usr/bin/env python3
"""postgres.py COMMAND…: runs the command beside a PostgreSQL server of its own, at which PGHOST and its kin point.
Without a server on this machine it prints "skipped" and succeeds."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def server_folder():
    """Debian keeps the server's programs out of PATH, and pg_config knows where."""
    for tool in ("pg_config", "initdb"):
        found = shutil.which(tool)
        if found is None:
            continue
        folder = Path(found).parent
        if tool == "pg_config":
            folder = Path(subprocess.run([found, "--bindir"], check=True, capture_output=True, text=True).stdout.strip())
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


def main(command):
    programs = server_folder()
    if programs is None:
        print("skipped: no PostgreSQL server")
        return 0
    with tempfile.TemporaryDirectory(prefix="gofer-pg-") as folder:
        identity = {}
        if os.geteuid() == 0:  # as which the server refuses to run
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

        def server(tool, *arguments):
            log = Path(folder, tool + ".out")  # not a pipe, which the server would keep open
            with log.open("w", encoding="utf-8") as out:
                status = subprocess.run([programs / tool, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                                        stderr=out, timeout=120, **identity).returncode
            assert status == 0, f"{tool}: status {status}: {log.read_text(encoding='utf-8')}"

        data = f"{folder}/data"
        server("initdb", "-D", data, "-U", "guide", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        server("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", f"-k {folder} -c listen_addresses= -F", "start")
        try:
            where = {"PGHOST": folder, "PGPORT": "5432", "PGUSER": "guide", "PGDATABASE": "postgres"}
            kept = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
            return subprocess.run(command, env=kept | where).returncode
        finally:
            server("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
