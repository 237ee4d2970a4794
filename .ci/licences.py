"""Checks that every dependency's licence is on the list in deny.toml. Reads lines of `name version|licence`."""

import re
import sys
import tomllib


def allowed(expression: str, names: set[str]) -> bool:
    """An SPDX expression of names, AND, OR, WITH and brackets; `/` is an old way to write OR."""
    tokens = re.findall(r"[()]|[^\s()/]+|/", expression)
    position = 0

    def either() -> bool:
        nonlocal position
        result = both()
        while position < len(tokens) and tokens[position] in ("OR", "/"):
            position += 1
            result = both() or result
        return result

    def both() -> bool:
        nonlocal position
        result = one()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            result = one() and result
        return result

    def one() -> bool:
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "(":
            result = either()
            position += 1
            return result
        if position < len(tokens) and tokens[position] == "WITH":
            token = f"{token} WITH {tokens[position + 1]}"
            position += 2
        return token in names

    return either()


def main() -> int:
    with open(sys.argv[1], "rb") as file:
        names = set(tomllib.load(file)["licenses"]["allow"])
    packages = {tuple(line.strip().split("|", 1)) for line in sys.stdin if "|" in line}
    bad = [(name, licence) for name, licence in packages if not licence or not allowed(licence, names)]
    for name, licence in sorted(bad):
        print(f"{name}: licence {licence!r} is not on the list", file=sys.stderr)
    print(f"{len(packages)} packages, {len(bad)} with a licence that is not on the list")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
