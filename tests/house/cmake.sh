#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Projects of CMake find SCR in an installation that was moved to a scratch directory: the example in C as it is, and
# one that uses every target, both spellings of the name, components, and the languages that are here.
#
# Arguments: source directory, build directory, install prefix, library directory below it, C compiler command; then the
# names of the targets that must be there. $MPIEXEC starts programs; $LANGUAGES: of the second project.
# Skipped without cmake.
set -euo pipefail
source=$1 build=$2 prefix=$3 libdir=$4 compiler=$5
shift 5

export CMAKE_GENERATOR=Ninja # which builds SCR, too; a machine may have no make
if ! command -v cmake >/dev/null; then
    echo "no cmake here"
    exit 77
fi
scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
meson install -C "$build" --no-rebuild --destdir "$scratch/staged" >"$scratch/log" || {
    cat "$scratch/log"
    exit 1
}
# relocatable: it works where it was not configured to be
mv "$scratch/staged$prefix" "$scratch/moved"
export SCR_CNTL_BASE=$scratch/cntl SCR_CACHE_BASE=$scratch/cntl SCR_PREFIX=$scratch/prefix
mkdir "$scratch/cntl" "$scratch/prefix"

configure() { # NAME ARGUMENT...
    local name=$1
    shift
    CC=${compiler##* } cmake -S "$scratch/$name" -B "$scratch/$name/build" -DCMAKE_PREFIX_PATH="$scratch/moved" \
        ${MPICC:+-DMPI_C_COMPILER="$MPICC"} ${MPICXX:+-DMPI_CXX_COMPILER="$MPICXX"} ${MPIFORT:+-DMPI_Fortran_COMPILER="$MPIFORT"} "$@"
}

# The project is refused, and the output has each of the words.
refused() { # NAME WORD...
    local name=$1 word
    shift
    if configure "$name" >"$scratch/log" 2>&1; then
        echo "$name: CMake accepts what it must refuse"
        exit 1
    fi
    tr -s ' \n' ' ' <"$scratch/log" >"$scratch/words" # CMake wraps lines
    for word; do
        grep -qF -- "$word" "$scratch/words" || { cat "$scratch/log" && echo "no \"$word\" in it" && exit 1; }
    done
}

project() { # NAME LANGUAGES, the rest from standard input
    mkdir "$scratch/$1"
    { printf 'cmake_minimum_required(VERSION 3.18)\nproject(test %s)\n' "$2" && cat; } >"$scratch/$1/CMakeLists.txt"
}

run() { # PROGRAM
    rm -rf "$scratch/prefix" && mkdir "$scratch/prefix"
    (cd "$scratch/prefix" && LD_LIBRARY_PATH='' "$MPIEXEC" -n 2 "$1")
    [ "$(cat "$scratch"/prefix/hello/rank_*.txt)" = $'hello from rank 0\nhello from rank 1' ]
}

echo "== the example"
cp -r "$source/libscr-core/examples/cmake" "$scratch/example"
configure example
cmake --build "$scratch/example/build"
run "$scratch/example/build/hello"

echo "== all targets: $*"
cp "$source"/libscr-core/examples/hello_* "$scratch"
project all "$LANGUAGES" <<END
find_package(SCR 3.1...4.9 REQUIRED)
foreach(name IN ITEMS SCR_FOUND SCR_VERSION SCR_INCLUDE_DIRS SCR_LIBRARIES)
  if(NOT \${name})
    message(FATAL_ERROR "\${name} is not set")
  endif()
endforeach()
foreach(name IN ITEMS $*)
  file(GLOB headers RELATIVE \${SCR_INCLUDE_DIRS} \${SCR_INCLUDE_DIRS}/*/*.h \${SCR_INCLUDE_DIRS}/scr.h)
  # kvtree-mpi: <kvtree/kvtree_mpi.h>
  string(REGEX REPLACE "^([a-z]+)-mpi\$" "\\\\1/\\\\1_mpi" header \${name})
  string(REGEX REPLACE "^(kvtree|axl|redset|filo)\$" "\\\\1/\\\\1" header \${header})
  if(NOT name STREQUAL "fortran")
    file(WRITE \${CMAKE_BINARY_DIR}/\${name}.c "#include <\${header}.h>\nint main(void) { return 0; }\n")
    add_executable(\${name} \${CMAKE_BINARY_DIR}/\${name}.c)
    target_link_options(\${name} PRIVATE -Wl,--no-as-needed)
    target_link_libraries(\${name} scr::\${name})
  endif()
endforeach()
get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(CXX IN_LIST languages)
  add_executable(hello_cxx ../hello_cxx.cpp)
  target_include_directories(hello_cxx PRIVATE \${SCR_INCLUDE_DIRS})
  target_link_libraries(hello_cxx \${SCR_LIBRARIES})
endif()
if(Fortran IN_LIST languages)
  add_executable(hello_fortran ../hello_fortran.f90)
  target_link_libraries(hello_fortran scr::scrf) # as SCR 3 calls scr::fortran
endif()
find_package(scr 4 REQUIRED COMPONENTS scr) # once more, with the other name
END
configure all
cmake --build "$scratch/all/build"
for name; do
    [ "$name" = fortran ] || LD_LIBRARY_PATH='' "$scratch/all/build/$name"
done
for language in cxx fortran; do
    [ ! -f "$scratch/all/build/hello_$language" ] || run "$scratch/all/build/hello_$language"
done

echo "== one library, where there is no MPI"
project kvtree C <<'END'
find_package(scr REQUIRED COMPONENTS kvtree OPTIONAL_COMPONENTS nothing)
if(MPI_FOUND OR TARGET scr::scr OR scr_nothing_FOUND)
  message(FATAL_ERROR "more than was asked for")
endif()
add_executable(example example.c)
target_link_libraries(example scr::kvtree)
END
cp "$source/libkvtree/examples/example_kvtree.c" "$scratch/kvtree/example.c"
configure kvtree -DCMAKE_DISABLE_FIND_PACKAGE_MPI=TRUE
cmake --build "$scratch/kvtree/build"
(cd "$scratch/prefix" && LD_LIBRARY_PATH='' "$scratch/kvtree/build/example")

echo "== what is refused"
project unknown C <<<'find_package(SCR REQUIRED COMPONENTS kvtree elephant)'
refused unknown 'has no component "elephant"' 'it was built with:' "$scratch/moved"
project newer C <<<'find_package(scr 99 REQUIRED)'
refused newer 'version: 4.' 'scrConfig.cmake'
project range C <<<'find_package(scr 3...<4.0.0 REQUIRED)'
refused range 'version: 4.'
rm "$scratch/moved/$libdir/libscr-kvtree.so"
refused kvtree "/$libdir/libscr-kvtree.so is missing" 'install SCR again'
