#pragma once

// For loops over registers. Gcc 12 keeps an array of them in memory unless they are unrolled first, and sets
// it to zero by an instruction that takes longer than to store it (rep stos).
#define VOXGATE_UNROLL _Pragma("GCC unroll 16")
