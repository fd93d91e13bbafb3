"""Check every current contract against every released version of it.

python -m kapelle.schemas.check SOURCE_DIR --released DIR
"""

import argparse
import sys
from pathlib import Path

from kapelle.schemas.compatibility import violations
from kapelle.schemas.errors import SchemaError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kapelle.schemas.check", description=__doc__)
    parser.add_argument("source", type=Path, help="directory of .avsc files")
    parser.add_argument("--released", type=Path, required=True, help="directory of released schemas")
    options = parser.parse_args(arguments)
    try:
        breaches = violations(options.source, options.released)
    except SchemaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.writelines(f"{violation}\n" for violation in breaches)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
