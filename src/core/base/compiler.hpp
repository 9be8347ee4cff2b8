// What the sources ask of the compiler and the standard library, in one place.
//
// The kernels use vector types, prefetches and bit counts by the extensions that GCC and Clang share.
#pragma once

#include <charconv>

#if !defined(__GNUC__)
#error "Labelwood compiles with GCC 12 or newer and Clang 16 or newer"
#endif

#if !defined(__cpp_lib_to_chars)
#error "the standard library must convert floating-point numbers in <charconv>, as libstdc++ 11 and newer do"
#endif
