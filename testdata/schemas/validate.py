"""Compares a document on standard input with a schema of this folder: validate.py SCHEMA."""

import json
import pathlib
import sys

import jsonschema

folder = pathlib.Path(__file__).parent
schemas = {path.name: json.loads(path.read_text()) for path in folder.glob("*.schema.json")}
schema = schemas[sys.argv[1]]
# Schemas name each other by their address, of which the last part is the name of the file.
resolver = jsonschema.RefResolver(schema.get("$id", schema.get("id", "")), schema, handlers={
    "http": lambda address: schemas[address.rsplit("/", 1)[-1]],
    "https": lambda address: schemas[address.rsplit("/", 1)[-1]],
})
validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft7Validator)
errors = list(validator(schema, resolver=resolver).iter_errors(json.load(sys.stdin)))
for error in errors:
    print("/".join(map(str, error.path)), error.message[:300])
sys.exit(bool(errors))
