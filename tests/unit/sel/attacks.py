"""Expressions that try to escape, to hang or to eat the memory. None of them may give a value."""

from collections.abc import Iterator


def words(text: str) -> list[str]:
    return text.split()


DUNDERS = words(
    """
    __class__ __dict__ __bases__ __mro__ __subclasses__ __globals__ __builtins__ __init__ __getattribute__
    __import__ __reduce__ __code__ __closure__ __self__ __module__ __doc__ __call__ __eq__ __format__ __sizeof__
    __del__
    """
)
PYTHON_MEMBERS = words(
    """
    format_map encode decode join translate maketrans isalpha find count title zfill append extend pop insert
    remove clear copy keys values items update setdefault real imag numerator bit_length to_bytes from_bytes hex
    as_integer_ratio ms zone local fixed_ms sel_text sel_item value run accepts kind element default
    """
)
JAVA_MEMBERS = words(
    """
    getClass hashCode wait notify notifyAll finalize clone intern getBytes chars codePoints matches forName
    newInstance getDeclaredMethods getClassLoader invoke exec getRuntime exit load loadLibrary
    """
)
TARGETS = ("'abc'", "5", "2.5", "true", "new Map()", "new long[]{1}", "new DateTime(0)", "DateTimeZone.UTC", "params")
JAVA_CLASSES = words(
    """
    Runtime Thread ClassLoader Class Process ProcessBuilder File FileReader FileInputStream Socket URL Object
    Exception StringBuilder ArrayList Scanner Random Date Calendar SecurityManager Method Field Proxy Unsafe
    ScriptEngineManager ThreadGroup Timer Pattern Matcher JsonNode Function Supplier Stream Optional
    """
)
PYTHON_NAMES = words(
    """
    os sys subprocess builtins eval exec compile open input globals locals vars dir getattr setattr type object
    lambda import_module breakpoint exit quit print memoryview frame host limits inputs self f cls
    """
)


def names_and_members() -> Iterator[str]:
    """Reaching for Python or Java through attributes."""
    for dunder in DUNDERS:
        yield f"'a'.{dunder}"
        yield f"'a'.{dunder}()"
        yield f"params.{dunder}"
        yield f"new DateTime(0).{dunder}"
        yield f"Util.{dunder}()"
    for member in PYTHON_MEMBERS:
        yield f"'a'.{member}('x')" if member != "join" else "'a'.join(1)"
        yield f"params.{member}()"
    for number, member in enumerate(JAVA_MEMBERS):
        yield f"{TARGETS[number % len(TARGETS)]}.{member}()"
        yield f"System.{member}()"
    for target in TARGETS:
        yield f"{target}.getClass().forName('java.lang.Runtime')"
        yield f"{target}.__class__.__bases__[0].__subclasses__()"
    for name in JAVA_CLASSES:
        yield f"new {name}()"
    for name in PYTHON_NAMES:
        yield f"{name}.system('id')" if name not in ("lambda",) else "lambda.x()"
    yield "java.lang.Runtime.getRuntime().exec('id')"
    yield "java.lang.System.exit(1)"
    yield "System.getProperty('user.home')"
    yield "System.out.println('x')"
    yield "Class.forName('java.lang.Runtime')"
    yield "String.class"
    yield "''.class.forName('x')"
    yield "params['__class__']['__mro__']"
    yield "params.get('__class__').x()"
    yield "params.getFromStep('__class__')"
    yield "__import__('os').system('id')"
    yield "eval('1')"
    yield "exec('x=1')"
    yield "[x for x in ()]"
    yield "(lambda: 0)()"
    yield "{}.__class__"
    yield "'{0.__class__}'.format(1)"
    yield "`id`"
    yield "$(id)"
    yield "x = params; x.__dict__"
    yield "m = new Map(); m.put('__class__', 1); m.__class__"


def formats_and_regexes() -> Iterator[str]:
    """Format strings, replacement strings and regular expressions."""
    yield "String.format('{0.__class__}%s%s', 1)"
    yield "String.format('%(x)s', 1)"
    yield "String.format('%*d', 1, 2)"
    yield "String.format('%999999999d', 1)"
    yield "String.format('%.999999999f', 1.5)"
    yield "String.format('%99999d', 1)"
    yield "String.format('%1000$s', 1)"
    yield "String.format('%c', 1)"
    yield "String.format('%tY', new DateTime(0))"
    yield "String.format('%h', 'a')"
    yield "String.format('%a', 1.5)"
    yield "s = '%1000d'; while (s.length() < 100000) s += '%1000d'; String.format(s, 1)"
    yield "s = '%s'; while (true) { s = String.format('%s%s', s, s); }"
    for bomb in (
        "(a+)+$",
        "(a*)*b",
        "(a|a)*b",
        "(a|aa)+$",
        "([a-zA-Z]+)*!",
        "(.*a){20}",
        "(x+x+)+y",
        "^(a?){25}a{25}$",
    ):
        yield f"s = 'a'; while (true) {{ s = s + s; s.replaceAll('{bomb}', ''); }}"
    yield (
        "s = 'a'; while (s.length() < 60000) s = s + s; "
        "s.replaceAll('a*b|a', 'b').replaceAll('b*a|b', 'a').length() / 0"
    )
    yield "s = 'a'; while (s.length() < 60000) s = s + s; s.split('a*b|a').length / 0"
    for bad in ("(?=a)", "(?<=a)", "(a)\\\\1", "a++", "(", "[", "*", "a{2,1}", "\\\\k<x>", "(?P<n>a)(?P=n)", "a{1001}"):
        yield f"'abc'.split('{bad}')"
        yield f"'abc'.replaceAll('{bad}', '')"
    yield "'abc'.split('((a{100}){100}){100}')"
    yield "'abc'.split('(((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9}){9})')"
    yield "p = '(a|b)'; while (true) { p = p + p; 'x'.split(p); }"
    yield "p = 'a'; for (;;) { p = '(' + p + ')*'; 'x'.split(p); }"
    yield "for (i = 0; true; i += 1) { 'abc'.split('[a-z]{900}' + i); }"
    yield "'abc'.replaceAll('b', '$99')"
    yield "'abc'.replaceAll('b', '${x}')"
    yield "'abc'.replaceAll('b', '$')"
    yield "new DateTime(0).toString('yyyy" + "y" * 40 + "')"
    yield "DateTimeFormat.forPattern('" + "'" * 3 + "')"
    yield "p = 'yyyy'; while (true) { p += p; new DateTime(0).toString(p); }"


def loops() -> Iterator[str]:
    """Never ending."""
    bodies = ("", "x = 1;", "x += 1;", "s = 'a' + x;", "new DateTime();", "continue;", "if (false) break;", "{ { } }")
    heads = ("while (true)", "for (;;)", "for (i = 0; i < 10; i += 0)", "for (i = 0; i > -1; i += 1)", "while (!false)")
    for head in heads:
        for body in bodies:
            yield f"{head} {{ {body} }}"
    yield "for (;;) for (;;) ;"
    yield "for (i = 0; i < 25000; i += 1) for (j = 0; j < 25000; j += 1) for (k = 0; k < 25000; k += 1) ;"
    yield "while (true) { for (int i = 0; i < 10; i += 1) { if (i == 5) continue; } }"
    yield "Util.intsBetween(0, 1, 0)"
    yield "Util.intsBetween(1, 0, 0)"
    yield "Util.intsBetween(0, 9223372036854775807, 1)"
    yield "Util.intsBetween(9223372036854775807, -9223372036854775808, -1)"
    yield "Util.dateIntsBetween(10101, 99991231, 1)"
    yield "Util.dateIntsBetween('00010101', '99991231', 1)"
    yield "Util.dateIntsBetween(20200101, 20300101, 0)"
    yield "new DateTime(0).plusYears(2147483647)"
    yield "new DateTime(0).plusMonths(9223372036854775807)"
    yield "new DateTime(0).plusDays(-9223372036854775808)"
    yield "new DateTime(0).plusWeeks(9999999999)"
    yield "new DateTime(0).plusMillis(9223372036854775807)"
    yield "new DateTime(-9223372036854775808)"
    yield "new DateTime('999999999-01-01')"
    yield "new DateTime('-1-01-01')"
    yield "new DateTime(0).withYear(99999)"
    yield "new DateTime(0).withWeekyear(-5)"
    yield "DateTimeZone.forID('America/New_York').getOffset(-9223372036854775808)"
    yield "DateTimeZone.forID('America')"
    yield "DateTimeZone.forID('/etc/passwd')"
    yield "DateTimeZone.forID('posix/UTC/../../../../etc/passwd')"
    yield "DateTimeZone.forID('tzdata.zi')"
    yield "DateTimeFormat.forPattern('yyyyMMdd').parseDateTime('99999999999999999999999')"
    yield "DateTimeFormat.forPattern('y').parseDateTime('999999999')"
    yield "DateTimeFormat.forPattern('yyyyMMdd').print(9223372036854775807)"


def memory() -> Iterator[str]:
    """Growing without end."""
    grow = {
        "s": "'a'",
        "t": "'aé'",
        "u": "'a😀'",
    }
    steps = (
        "s = s + s",
        "s += s",
        "s = s + 'x' + s",
        "s = String.join(s, s, s)",
        "s = String.format('%s%s', s, s)",
        "s = s.replace('a', 'aa')",
        "s = s.replace('', s)",
        "s = s.replaceAll('a', '$0$0')",
        "s = s.replaceAll('', 'ab')",
        "s = s.replaceAll('^', s)",
        "s = s.toUpperCase().toLowerCase() + s",
        "s = (s + '\"').escape() + s",
        "s = Util.toJson(s) + s",
        "s = String.valueOf(s) + s + s.trim()",
        "s = String.join(s + ',', s.split(''))",
        "s = s.substring(0) + s",
    )
    for start in grow.values():
        for step in steps:
            yield f"s = {start}; while (true) {{ {step}; }}"
    yield "m = new Map(); for (i = 0; true; i += 1) { m.put('k' + i, m.size()); }"
    yield "m = new Map(); s = 'a'; while (true) { s = s + s; m.put(s, s); }"
    yield (
        "m = new Map(); while (true) { n = new Map(); n.put('a', m); n.put('b', m); m.put('c' + m.size(), n); '' + m; }"
    )
    yield (
        "m = new Map(); for (i = 0; i < 60; i += 1) { Map n = new Map(); n.put('a', m); n.put('b', m); m = n; } '' + m"
    )
    yield (
        "m = new Map(); for (i = 0; i < 60; i += 1) { Map n = new Map(); n.put('a', m); n.put('b', m); m = n; }"
        " Util.toJson(m)"
    )
    yield "m = new Map(); m.put('m', m); m"
    yield "m = new Map(); m.put('m', m); '' + m"
    yield "m = new Map(); m.put('m', m); Util.toJson(m)"
    yield "m = new Map(); n = new Map(); m.put('n', n); n.put('m', m); String.valueOf(m)"
    yield "m = new Map(); for (i = 0; i < 200; i += 1) { Map n = new Map(); n.put('a', m); m = n; } m"
    yield "while (true) { new long[25000]; }"
    yield "while (true) { new String[25000]; }"
    yield "m = new Map(); for (i = 0; true; i += 1) { m.put('' + i, new long[25000]); }"
    yield "m = new Map(); for (i = 0; true; i += 1) { m.put('' + i, Util.intsBetween(0, 25000, 1)); }"
    yield "new long[25001]"
    yield "new long[9223372036854775807]"
    yield "new String[2147483647]"
    yield "new boolean[-1]"
    yield "s = 'a,'; while (s.length() < 200000) s = s + s; s.split(',')"
    yield "s = 'a'; while (s.length() < 200000) s = s + s; s.split('')"
    yield "String[] a = new String[25000]; s = 'x'; for (i = 0; i < 25000; i += 1) { a[i] = s; s += 'x'; }"
    yield "Math.pow(10, 1000000).longValue() / 0"
    yield "UUID u; while (true) { u = UUID.randomUUID(); }"


def numbers() -> Iterator[str]:
    """Integers that would grow, and literals that are too large."""
    yield "9" * 20
    yield "9" * 900
    yield "-" + "9" * 900
    yield "0x" + "F" * 500
    yield "Long.parseLong('" + "9" * 900 + "')"
    yield "Long.valueOf('" + "1" * 19 + "9')"
    yield "Double.parseDouble('" + "9" * 1500 + "')"
    yield "new Long('" + "9" * 100 + "')"
    yield "x = 9; while (true) { x = x * x; }"
    yield "x = 3; while (true) { x *= x; x += 1; }"
    yield "x = 2; for (;;) { x = x * x * x * x * x * x; }"
    yield "x = 1.5; while (true) { x = x * x; }"
    yield "1 / 0"
    yield "1 % 0"
    yield "-9223372036854775808 / 0"
    yield "x = 1; x /= 0"
    yield "x = 1; x %= 0"
    yield "Util.incrementDateInt(20200101, 9223372036854775807)"
    yield "Util.dateIntToTs(99999999999)"
    yield "Util.tsToDateInt(9223372036854775807)"
    yield "Util.dateIntHourToTs(20200101, 10, 'UTC', 9223372036854775807, 9223372036854775807)"
    yield "Util.timeoutForDateTimeDeadline(new DateTime(0), '" + "9" * 300 + " hours')"
    yield "String.format('%d', 1e300)"
    yield "new DateTime(1e300)"
    yield "new long[1][1]"
    yield "'abc'.substring(9223372036854775807)"
    yield "'abc'.substring(-9223372036854775808, 9223372036854775807)"


def depth() -> Iterator[str]:
    """Nesting, within the length that an expression may have."""
    for opening, closing, middle in (
        ("{", "}", ""),
        ("Math.min(1,", ")", "1"),
        ("if(true){", "}", "1;"),
        ("while(true){", "}", "break;"),
        ("(1+", ")", "1"),
        ("a[", "]", "0"),
        ("(true?", ":1)", "1"),
        ("(x=", ")", "1"),
        ("new long[", "]", "1"),
        ("String.valueOf(", ")", "1"),
        ("!(true&&", ")", "true"),
        ("for(;;){", "}", "break;"),
        ("new String[]{", "}", "'a'"),
        ("x.put('a',", ")", "1"),
        ("-(1+", ")", "1"),
    ):
        count = 1990 // (len(opening) + len(closing))
        yield opening * count + middle + closing * count
    yield "x=" * 900 + "1"
    yield "(" * 1990
    yield "[" * 1990
    yield "{" * 1990
    yield ")" * 1990
    yield "-" * 1990 + "1"
    yield "!" * 1990
    yield "- " * 900 + "true"
    yield "1" + "+1" * 990 + "+true"
    yield "true" + "&&true" * 280 + "&&1"
    yield "'a'" + ".trim()" * 280 + ".x()"
    yield "true?1:" * 270
    yield "if(false)1;else " * 120 + "1/0;"
    yield "/*" * 900
    yield "a/*" * 600
    yield '"' * 1991
    yield "'\\" * 900
    yield "x" * 1990 + "."
    yield "." * 1990
    yield "import a;" * 200 + "1/0"
    yield "\x00"
    yield "1 + \x00"
    yield "\ud800"
    yield "'\ud800'.split('.')[5]"
    yield "\u202e1/0"
    yield "x" * 2001
    yield " " * 2001
    yield ";" * 1990 + "1/0"
    yield "int a;" * 300 + "1/0"


ATTACKS = tuple(
    attack for family in (names_and_members, formats_and_regexes, loops, memory, numbers, depth) for attack in family()
)
