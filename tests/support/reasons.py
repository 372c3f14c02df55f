"""Findings in few words of their fields, for assertions: no sentence of a command is needed."""


def changes(found):
    """(check and what, before, after, nodes) of each change; (kind, message) of what is none."""
    return [
        (" ".join(filter(None, (f.check, f["what"]))), f["before"], f["after"], f.subject)
        if f.kind == "changed"
        else (str(f.kind), f.message)
        for f in found
    ]


def comparisons(found):
    """(metric, role, differences) of what cannot be compared."""
    return [(f.metric, f["role"], f.get("differences")) for f in found]


def measured(found):
    """(metric, nodes) of what only one side has."""
    return sorted((f.metric, f.subject) for f in found)


def kinds(judged):
    """The kinds of the findings of a node, a pair or a criterion, in their order."""
    return [why.kind for why in judged.findings]


def reasons(judged):
    """(kind, details) of each finding of a node, a pair or a criterion."""
    return [(why.kind, dict(why.details)) for why in judged.findings]


def recorded(plain):
    """The same, (kind, details) of each finding, of a JSON record."""
    return [(why["kind"], why.get("details", {})) for why in plain["findings"]]
