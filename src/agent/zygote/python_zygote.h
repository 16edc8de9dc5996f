#pragma once
// The text of python_zygote.py, for `python -c`: the user's interpreter has nothing of ours
// installed.

#include <string_view>

namespace muster::agent {

extern const std::string_view kPythonZygote;

}  // namespace muster::agent
