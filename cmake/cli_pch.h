// What the files of the command line need.
#include <CLI/CLI.hpp>

#include "common_pch.h"
