#!/usr/bin/env python3
"""Writes crates/views/src/cost/prices.txt from a table of prices in the form of litellm's.

    scripts/prices.py TABLE.json --source "litellm 1.108.4" --date 2026-11-16

TABLE.json has dollars per million tokens. The names of its fields are litellm's.
"""
import argparse
import json
import pathlib
import re
from decimal import Decimal

OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/views/src/cost/prices.txt"
KINDS = ["input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
         "cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"]
TIER = re.compile(r"(.+)_above_(\d+)k_tokens$")
# The lengths of a request at which prices may change. The program groups requests by them, see context.rs.
LENGTHS = {100, 128, 200, 272}


def number(price):
    if price is None:
        return "-"
    if -price.as_tuple().exponent > 6:
        raise SystemExit(f"{price} has more than six decimals")
    text = f"{price:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def lines(name, fields):
    """The line of a model, and one for each length at which its prices change."""
    tiers = {0: {}}
    for field, price in fields.items():
        if field == "provider":
            continue
        tier = TIER.match(field)
        length, kind = (int(tier[2]), tier[1]) if tier else (0, field)
        tiers.setdefault(length, {})[kind] = price
    reasoning = tiers[0].pop("output_cost_per_reasoning_token", None)
    if reasoning not in (None, tiers[0]["output_cost_per_token"]):
        raise SystemExit(f"{name}: reasoning costs more than other output, which prices.txt cannot say")
    for length, prices in sorted(tiers.items()):
        unknown = set(prices) - set(KINDS) or {length} - LENGTHS - {0}
        if unknown:
            raise SystemExit(f"{name}: unknown {unknown}")
        columns = [number(prices.get(kind)) for kind in KINDS]
        if not any(prices.values()):
            # The table has zeros for models that are not sold by tokens, and for experiments.
            continue
        yield " ".join([name, f">{length * 1000}", *columns] if length else [name, *columns])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--source", required=True)
    parser.add_argument("--date", required=True)
    args = parser.parse_args()
    table = json.loads(args.table.read_text(), parse_float=Decimal, parse_int=Decimal)
    head = [
        "# List prices in US dollars per million tokens, written by scripts/prices.py.",
        f"# From the table of {args.source}, as of the date below.",
        "# Columns: model, input, output, cache read, cache write, cache write for an hour. `-`: no price of its own.",
        "# `>N` after a model: its prices for requests with more than N tokens of input, cached ones included.",
        f"date {args.date}",
    ]
    rows = [line for name in sorted(table) for line in lines(name, table[name])]
    OUT.write_text("\n".join(head + rows) + "\n")
    print(f"{len({row.split()[0] for row in rows})} of {len(table)} models have prices")


main()
