// The hot loops, compiled once per instruction set (see CMakeLists.txt) into a namespace of that name.
#include "common.hpp"
