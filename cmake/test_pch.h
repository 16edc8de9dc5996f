// What most tests of torch-free code need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plain_pch.h"
