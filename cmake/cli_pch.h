// What the files of the command line need.
#include <CLI/CLI.hpp>

#include "plain_pch.h"
