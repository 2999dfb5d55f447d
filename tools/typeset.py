"""Equations: in plain letters in the code, as LaTeX in the Markdown, as MathML in the site.

A docstring has `beta (Q(s,a) - <pi,Q>)`, and `to_latex` converts it to LaTeX. In Markdown, LaTeX is
between $` and `$, or in a fence of the language `math`, which code hosts support. `to_mathml`
replaces both by MathML, which every browser renders without scripts or requests.
"""

import re

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "lambda", "mu", "pi", "psi",
    "rho", "sigma", "tau", "Delta", "Gamma", "Omega", "Psi",
}  # fmt: skip
FUNCTIONS = {"max", "min", "ln", "exp", "sum"}
OPERATORS = {
    "<=>": r"\iff", "=>": r"\implies", "<=": r"\le", ">=": r"\ge", "<-": r"\leftarrow", "||": r"\|",
    "...": r"\dots", "~": r"\sim", "*": r"\cdot", "{": r"\{", "}": r"\}", "<": "<", ">": ">",
}  # fmt: skip
TOKEN = re.compile(
    r"\s+|[\^_](?:[A-Za-z]+|\d+(?:\.\d+)?)|[A-Za-z]+|\d+(?:\.\d+)?|<=>|=>|<=|>=|<-|\|\||\.\.\.|"
    r"(?P<open><(?=\S))|(?P<close>(?<=[^\s<=])>(?!\S*=))|."
)
GROUP = re.compile(r"[\^_][({]|sqrt\(")
NONE, THIN = 'lspace="0" rspace="0"', 'lspace="0.17em" rspace="0.17em"'
PRIME = re.compile(r"<msup>(<mi>[^<]+</mi>)<mi>&#x02032;</mi></msup>")  # the glyph is raised
NAME = re.compile(r"<m[io]>(max|min|ln|exp)</m[io]>")
INLINE = re.compile(r"\$`([^`]+)`\$")
BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def to_latex(equation: str) -> str:
    """Converts an equation in plain letters to LaTeX."""
    found, at = [], 0
    while at < len(equation):
        if group := GROUP.match(equation, at):
            end = _closing(equation, group.end() - 1)
            inside = to_latex(equation[group.end() : end])
            if group[0] == "_(":  # an order statistic, z_(i)
                inside = f"({inside})"
            found.append((r"\sqrt" if group[0] == "sqrt(" else group[0][0]) + f"{{{inside}}}")
            at = end + 1
        else:
            match = TOKEN.match(equation, at)
            assert match is not None  # any character is a token
            found.append(_token(match, equation))
            at = match.end()
    spaced = re.sub(r"\s+", " ", "".join(found)).strip()
    return re.sub(r"(\\[A-Za-z]+|}) (?=[)\]},'_^/(\[;])", r"\1", spaced)  # remove redundant spaces


def _closing(text: str, start: int) -> int:
    """The index of the bracket that closes the one at `start`."""
    one, other = text[start], {"(": ")", "{": "}"}[text[start]]
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == one) - (text[at] == other)
        if not depth:
            return at
    raise ValueError(f"a bracket is not closed: {text}")


def _token(match: re.Match[str], equation: str) -> str:
    token, before, after = match[0], equation[: match.start()], equation[match.end() :]
    letter = before[-1:].isalpha()
    if match["open"] or match["close"]:
        return r"\langle " if match["open"] else r"\rangle "
    if token in "~*" and letter:
        return "^*" if token == "*" else ""  # in LaTeX an accent precedes its letter, see below
    if token == "+" and before.endswith("]"):
        return "_+"
    if token[0] in "^_":
        return f"{token[0]}{{{_name(token[1:]).strip()}}}" if len(token) > 2 else token
    if not token.isalpha():
        return f"{OPERATORS[token]} " if token in OPERATORS else token
    if after.startswith("~"):
        return f"\\tilde{_name(token)}" if token in GREEK else f"\\tilde {token}"
    name = _name(token)
    if not name.startswith(r"\mathrm"):
        return name
    return (
        (r"\," if re.search(r"[\w)]'* $", before) else "")
        + name
        + (r"\, " if re.match(r" [\w(]", after) else " ")
    )


def _name(word: str) -> str:
    if word in GREEK | FUNCTIONS:
        return f"\\{word} "
    if word == "inf":
        return r"\infty "
    product = len(word) == 1 or (len(word) == 2 and word.islower())  # kq is k times q
    return word if product or not word.isalpha() else rf"\mathrm{{{word}}}"


def inline(equation: str) -> str:
    """Converts an equation in the code to Markdown."""
    return f"$`{to_latex(equation)}`$"


def to_mathml(markdown: str) -> str:
    """Converts the equations in Markdown to MathML."""
    from latex2mathml.converter import convert

    def block(match: re.Match[str]) -> str:
        return f'<div class="equation">{_close(convert(match[1].strip(), display="block"))}</div>'

    def within(match: re.Match[str]) -> str:
        return f'<span class="equation">{_close(convert(match[1]))}</span>'

    return INLINE.sub(within, BLOCK.sub(block, markdown))


def _close(mathml: str) -> str:
    """Spaces as in LaTeX: none around a slash and a prime, thin ones around a function's name."""
    mathml = mathml.replace("<mo>&#x0002F;</mo>", f"<mo {NONE}>&#x0002F;</mo>")
    mathml = PRIME.sub(rf"<mrow>\1<mo {NONE}>&#x02032;</mo></mrow>", mathml)
    return NAME.sub(rf"<mo {THIN}>\1</mo>", mathml)
