"""Reads Parquet tables with pyarrow, polars and DuckDB, and prints what each of them sees.

Usage: readers.py TABLES, a JSON object: name of a table -> list of its files, in order.

Prints a JSON object: name -> {"schema": {reader: [[column, type], ...]}, "rows": {reader: rows}}.
The files of a table are read alone and merged; a reader that cannot merge them fails. Types are
written alike for all readers: string, bool, uint32, list<...>, struct<name: type, ...>.
"""

import json
import sys

import duckdb
import polars
import pyarrow
import pyarrow.parquet


def pyarrow_type(kind):
    """No large_string, dictionary or null is renamed: they show in the output as what they are."""
    if pyarrow.types.is_list(kind):
        assert kind.value_field.name == "element", f"a list element is named {kind.value_field.name}"
        return f"list<{pyarrow_type(kind.value_type)}>"
    if pyarrow.types.is_struct(kind):
        fields = (f"{field.name}: {pyarrow_type(field.type)}" for field in kind)
        return f"struct<{', '.join(fields)}>"
    return str(kind)


def read_pyarrow(files):
    tables = [pyarrow.parquet.read_table(file) for file in files]
    for table, file in zip(tables, files, strict=True):
        footer = pyarrow.parquet.read_schema(file)
        # An Arrow schema carried along would speak to some readers only.
        carried = pyarrow.parquet.read_metadata(file).metadata
        assert carried is None, f"{file} carries {carried}"
        assert table.schema.equals(footer) and footer.equals(tables[0].schema), file
    # Without promotion: schemas that differ are an error.
    merged = pyarrow.concat_tables(tables)
    return [[field.name, pyarrow_type(field.type)] for field in merged.schema], merged.to_pylist()


POLARS = {
    "String": "string",
    "Boolean": "bool",
    "UInt32": "uint32",
    "UInt64": "uint64",
    "Int32": "int32",
    "Int64": "int64",
    "Float64": "double",
}


def polars_type(kind):
    if isinstance(kind, polars.List):
        return f"list<{polars_type(kind.inner)}>"
    if isinstance(kind, polars.Struct):
        fields = (f"{field.name}: {polars_type(field.dtype)}" for field in kind.fields)
        return f"struct<{', '.join(fields)}>"
    return POLARS.get(str(kind), str(kind))


def read_polars(files):
    alone = [polars.read_parquet(file) for file in files]
    assert all(frame.schema == alone[0].schema for frame in alone), [frame.schema for frame in alone]
    merged = polars.read_parquet(files)
    assert merged.equals(polars.concat(alone)), files
    return [[name, polars_type(kind)] for name, kind in merged.schema.items()], merged.to_dicts()


DUCKDB = {
    "VARCHAR": "string",
    "BOOLEAN": "bool",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "DOUBLE": "double",
}


def duckdb_type(kind):
    if kind.id == "list":
        return f"list<{duckdb_type(dict(kind.children)['child'])}>"
    if kind.id == "struct":
        fields = (f"{name}: {duckdb_type(child)}" for name, child in kind.children)
        return f"struct<{', '.join(fields)}>"
    return DUCKDB.get(str(kind), str(kind))


def read_duckdb(files):
    schemas = [duckdb.read_parquet(file) for file in files]
    assert all(one.columns == schemas[0].columns and one.types == schemas[0].types for one in schemas), files
    merged = duckdb.read_parquet(files)
    schema = [[name, duckdb_type(kind)] for name, kind in zip(merged.columns, merged.types, strict=True)]
    return schema, [dict(zip(merged.columns, row, strict=True)) for row in merged.fetchall()]


READERS = {"pyarrow": read_pyarrow, "polars": read_polars, "duckdb": read_duckdb}


def main():
    found = {}
    for name, files in json.loads(sys.argv[1]).items():
        results = {reader: read(files) for reader, read in READERS.items()}
        found[name] = {
            "schema": {reader: schema for reader, (schema, _) in results.items()},
            "rows": {reader: rows for reader, (_, rows) in results.items()},
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
