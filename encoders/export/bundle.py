"""Classes of this repository as one file that imports nothing of it: their sources, and those of all they lead to."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Imported = ast.Import | ast.ImportFrom


def bundled(roots: Iterable[type], title: str) -> str:
    """Return the source of a module of `roots` and of every definition that they use, what is used first.

    Raises `ValueError` where one name means different things in two modules.
    """
    bundle = _Bundle()
    for root in roots:
        bundle.add(root.__module__, root.__name__)
    return "\n\n\n".join([f'"""{title}"""\n\n' + "\n".join(sorted(bundle.imports)), *bundle.sources]) + "\n"


class _Bundle:
    """imports: lines of other packages. sources: of ours, in order."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.sources: list[str] = []
        self._meanings: dict[str, str] = {}  # name -> the import, or where it is defined

    def add(self, module: str, name: str) -> None:
        """Add what `name` means in `module`, and what that uses; a builtin or a local name adds nothing."""
        definition = _definitions(module).get(name)
        if isinstance(definition, ast.ImportFrom) and (ROOT / str(definition.module).split(".")[0]).is_dir():
            return self.add(str(definition.module), definition.names[0].name)
        if definition is None:
            return None
        is_import = isinstance(definition, Imported)
        meaning = ast.unparse(definition) if is_import else f"{module}, line {definition.lineno}"
        if name in self._meanings:
            if self._meanings[name] != meaning:
                raise ValueError(f"{name} is {meaning}, and {self._meanings[name]}.")
            return None
        known = meaning in self._meanings.values()  # PAD, TEXT = range(2) has two names
        self._meanings[name] = meaning
        if is_import:
            self.imports.add(meaning)
        elif not known:
            for used in ast.walk(definition):
                if isinstance(used, ast.Name):
                    self.add(module, used.id)
            decorators = getattr(definition, "decorator_list", [])
            first = min([definition.lineno, *(decorator.lineno for decorator in decorators)])
            self.sources.append("\n".join(_text(module).split("\n")[first - 1 : definition.end_lineno]))
        return None


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """Name -> the statement at the top of `module` that gives it its meaning; an import has one name."""
    return dict(_named(ast.parse(_text(module))))


@cache
def _text(module: str) -> str:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name, ast.ImportFrom(statement.module, [alias], statement.level)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.asname or alias.name, ast.Import([alias])
        elif isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from ((node.id, statement) for node in ast.walk(target) if isinstance(node, ast.Name))
