# SPDX-License-Identifier: BSD-3-Clause
"""The pretty-printer for gdb: in a program, on a core file, and on garbage.

usage: gdb.py libscr-kvtree.so, with the compiler in $CC
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
LIBRARY = pathlib.Path(sys.argv[1]).resolve()
ROOM = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = ROOM / 'debug/kvtree-gdb.py'

PROGRAM = r'''
#include "tests/build_tree.h"

kvtree *guide, *strange, *deep, *wide, *empty, *null;
kvtree *garbage = (kvtree *)8;
kvtree_elem *rank, *first_file;

void stop(void) {}
void show(const kvtree *tree) { if (tree) stop(); }

static void lines_of(const kvtree *tree, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out || kvtree_fprint(out, tree, KVTREE_FORM_LINES, 0) || fclose(out)) exit(1);
}

int main(void)
{
    guide = guide_tree();
    rank = kvtree_elem_get(guide, "RANK");
    first_file = kvtree_elem_get(kvtree_get_kv_int(guide, "RANK", 0), "FILES");
    deep = deep_tree(70);
    wide = wide_tree(500);
    empty = kvtree_new();
    strange = kvtree_new();
    static const char *const keys[] = {"", " a ", "a = b", "= a", "a =", "=", "a=b", "\\", "a\n\x1b[2J",
        "(level 1) a", "(level", "\xff\xc3", "\xc3\xbc", "\xc2\x85", "\xe2\x80\xae", "\xed\xa0\x80"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) kvtree_set_kv(strange, keys[i], keys[i]);
    lines_of(guide, "guide");
    lines_of(strange, "strange");
    lines_of(deep, "deep");
    lines_of(wide, "wide");
    show(guide);
    return 0;
}
'''


def gdb(*commands, program=('program',), script=SCRIPT, before=(), charset='UTF-8'):
    """Returns the output of each command."""
    arguments = ['gdb', '-nx', '-batch', '-ex', 'set debuginfod enabled off', '-ex', 'set confirm off',
                 '-ex', f'set host-charset {charset}', '-ex', f'set target-charset {charset}',
                 '-ex', 'set disable-randomization off']
    for command in before:
        arguments += ['-ex', command]
    if script:
        arguments += ['-ex', f'source {script}']
    for command in commands:
        arguments += ['-ex', r'echo \n@@\n', '-ex', command]
    done = subprocess.run([*arguments, *program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=100, env={**os.environ, 'LC_ALL': 'C.UTF-8'})
    parts = done.stdout.decode('utf-8', errors='surrogateescape').split('\n@@\n')
    assert len(parts) == len(commands) + 1, parts
    return [re.sub(r'^\$\d+ = ', '', part).removesuffix('\n') for part in parts[1:]]


def live(*commands, **how):
    """Runs commands in the program, stopped where all trees exist."""
    return gdb(*commands, before=('break stop', 'run'), program=('program',), **how)


def lines(name):
    return pathlib.Path(name).read_text(encoding='utf-8', errors='surrogateescape').rstrip('\n')


def test_lines_of_the_guide():
    tree, pointer, elem, struct = live('print *guide', 'print guide', 'print *rank', 'print *first_file')
    assert tree == '\n' + lines('guide'), tree
    assert re.fullmatch(r'\(kvtree \*\) 0x[0-9a-f]+', pointer.splitlines()[0]), pointer
    assert pointer.split('\n', 1)[1] == lines('guide'), pointer
    assert elem == '\n' + lines('guide'), elem  # the guide's tree has one element
    assert struct == '\n+- FILES = 2', struct   # without what follows it
    assert lines('guide').startswith('+- RANK\n  +- 0\n  | +- FILES = 2\n'), lines('guide')


def test_other_trees():
    strange, deep, empty, null = live('print *strange', 'print *deep', 'print *empty', 'print null')
    assert strange == '\n' + lines('strange'), (strange, lines('strange'))
    assert deep == '\n' + lines('deep'), deep
    assert empty == '(empty)', empty
    assert null == '(kvtree *) 0x0', null
    ascii = live('print *strange', charset='ASCII')[0]
    assert ascii == '\n' + lines('strange').replace('\u00fc', '\\xc3\\xbc'), ascii


def test_bounds():
    wide, few, all_of_it, raw = live('print *wide', 'print -elements 3 -- *wide',
                                     'print -elements unlimited -- *wide', 'print /r guide->count')
    listed = lines('wide').splitlines()
    assert wide == '\n' + '\n'.join(listed[:200] + ['...']), wide
    assert few == '\n+- key...\n+- key...\n+- key...\n...', few
    assert all_of_it == '\n' + lines('wide'), all_of_it
    assert raw == '1', raw


def test_a_backtrace_stays_short():
    trace = live('backtrace')[0]
    assert len(trace.splitlines()) == 3 and 'tree=(kvtree *) 0x' in trace, trace


def test_garbage():
    """Invalid pointers and cycles are reported, and gdb continues."""
    by_pointer, by_value, *_ = live('print garbage', 'print *garbage')
    assert by_pointer.startswith('(kvtree *) 0x8 <error: Cannot access memory at'), by_pointer
    assert '<error: Cannot access memory' in by_value or 'Cannot access memory' in by_value, by_value
    commands = ['set var guide->first->next = (kvtree_elem *)16', 'print *guide',
                'set var guide->first->next = guide->first', 'print *guide',
                'set var guide->first->next = 0', 'set var rank->value->first->value = (kvtree *)24',
                'print *guide', 'set var rank->value = guide', 'print *guide', 'print 40 + 2']
    _, following, _, circle, _, _, below, _, inside, alive = live(*commands)
    assert following.endswith('\n<error: Cannot access memory at address 0x10>'), following
    assert re.search(r'\n<error: the element at 0x\w+ for the second time>$', circle), circle
    assert '\n  +- 0 <error: Cannot access memory at' in below and '\n  +- 1\n' in below, below
    assert re.fullmatch(r'\n\+- RANK\n  <error: the element at 0x\w+ for the second time>', inside), inside
    assert alive == '42', alive


def test_core_file():
    made = live(f'generate-core-file {os.getcwd()}/core')[0]
    assert 'Saved corefile' in made, made
    tree, pointer, call = gdb('print *guide', 'print strange', 'print (int)getpid()', program=('program', 'core'))
    assert tree == '\n' + lines('guide'), tree
    assert pointer.split('\n', 1)[1] == lines('strange'), pointer
    assert 'without a process' in call, call  # so the printer has called nothing


def test_loaded_by_itself():
    """The file with the name and at the place of `meson install`."""
    library = pathlib.Path('lib').absolute() / LIBRARY.name
    library.parent.mkdir()
    shutil.copy(LIBRARY, library)
    for link in {soname(), 'libscr-kvtree.so'} - {library.name}:
        (library.parent / link).symlink_to(library.name)
    folder = pathlib.Path('auto-load' + str(library.parent))
    folder.mkdir(parents=True)
    shutil.copy(SCRIPT, folder / (library.name + '-gdb.py'))
    compile_program('other', library.parent)
    here = os.getcwd()
    tree = gdb('print *guide', script=None, program=('other',), before=(
        f'add-auto-load-safe-path {here}', f'add-auto-load-scripts-directory {here}/auto-load', 'break stop', 'run'))
    assert tree == ['\n' + lines('guide')], tree


def soname():
    dynamic = subprocess.run(['readelf', '-d', LIBRARY], capture_output=True, text=True, check=True).stdout
    return re.search(r'SONAME.*\[(.*)\]', dynamic)[1]


def compile_program(name, folder):
    subprocess.run([*os.environ['CC'].split(), '-g', '-O0', '-o', name, '-xc', '-', '-xnone', f'-I{ROOM}',
                    f'-I{ROOM}/include', f'-L{folder}', '-lscr-kvtree', f'-Wl,-rpath,{folder}'],
                   input=PROGRAM.encode(), check=True)


def skip(why):
    print(why)
    sys.exit(SKIP)


def check_what_is_here():
    if not shutil.which('gdb') or subprocess.run(['gdb', '-nx', '-batch', '-ex', 'python pass'],
                                                 capture_output=True).stderr:
        skip('no gdb with Python here')
    sections = subprocess.run(['readelf', '-S', '-W', LIBRARY], capture_output=True, text=True, check=True).stdout
    if '.debug_info' not in sections:
        skip('the library was built without debug information')
    started = live('print 40 + 2')
    if started != ['42'] or not pathlib.Path('guide').exists():
        skip(f'gdb cannot run programs here: {started}')


os.environ.pop('LD_LIBRARY_PATH', None)  # programs find their library by themselves
with tempfile.TemporaryDirectory(prefix='scr-test-') as scratch:
    os.chdir(scratch)
    try:
        compile_program('program', LIBRARY.parent)
        check_what_is_here()
        for name, test in list(globals().items()):
            if name.startswith('test_'):
                test()
                print(name)
    finally:
        os.chdir('/')
