#include "agent/launch/python_command.h"

#include <gtest/gtest.h>

#include "base/durable.h"
#include "base/memory_files.h"

namespace muster::agent {
namespace {

using Words = std::vector<std::string>;
using Kind = PythonProgram::Kind;

TEST(ParsePython, FindsWhatIsRunBehindTheFlags) {
  const struct {
    Words command;
    Kind kind;
    std::size_t index;
  } cases[] = {
      {{"python", "train.py", "-i"}, Kind::kFile, 1},
      {{"venv/bin/python3.11", "-u", "train.py"}, Kind::kFile, 2},
      {{"python3", "-uB", "-W", "ignore", "-Xdev", "a/b.py", "-m"}, Kind::kFile, 5},
      {{"python3", "-m", "pkg.train", "--lr", "1"}, Kind::kModule, 2},
      {{"python3", "-um", "pkg.train"}, Kind::kModule, 2},
      {{"python3", "-c", "import torch"}, Kind::kCode, 2},
  };
  for (const auto& [command, kind, index] : cases) {
    const auto program = ParsePython(command);
    ASSERT_TRUE(program) << command[1];
    EXPECT_EQ(program->kind, kind) << command[1];
    EXPECT_EQ(program->index, index) << command[1];
  }
}

TEST(CheckScript, RefusesAScriptThatIsNotThere) {
  MemoryFiles files;
  ASSERT_TRUE(files.MakeDirectory("/job", 0755));
  ASSERT_TRUE(WriteNew(files, "/job/train.py", AsBytes("pass\n")));
  const auto code_of = [&](const Words& command) {
    const Status checked = CheckScript(files, command, "/job");
    return checked ? std::optional<Code>() : checked.error().code();
  };
  for (const Words& command : {Words{"python", "train.py"},
                               {"python", "-u", "/job/train.py"},
                               {"python3", "-m", "absent"},
                               {"python3", "-c", "1"},
                               {"train"},
                               {"python3"}}) {
    EXPECT_EQ(code_of(command), std::nullopt) << command.back();
  }
  EXPECT_EQ(code_of({"python", "trian.py", "--lr", "1"}), Code::kNotFound);
  EXPECT_EQ(code_of({"python3", "/absent/train.py"}), Code::kNotFound);
}

TEST(ParsePython, LeavesToExecWhatACopyCannotDo) {
  const Words cases[] = {{},
                         {"python3"},
                         {"python3", "-"},
                         {"python3", "-i", "train.py"},
                         {"python3", "-x", "train.py"},
                         {"python3", "-mpkg"},
                         {"python3", "-m"},
                         {"python3", "-W"},
                         {"python3", "--check-hash-based-pycs", "never", "train.py"},
                         {"pythonic", "train.py"},
                         {"./python-wrapper", "train.py"},
                         {"bash", "-c", "python3 train.py"},
                         {"train.py"}};
  for (const Words& command : cases) EXPECT_FALSE(ParsePython(command)) << command.size();
}

class GuessPreloadTest : public testing::Test {
 protected:
  bool WantsTorch(const Words& command) {
    const auto program = ParsePython(command);
    EXPECT_TRUE(program);
    const Words modules = GuessPreload(files_, command, *program, "/w");
    EXPECT_TRUE(modules.empty() || modules == Words{"torch"});
    return !modules.empty();
  }
  void Put(const std::string& path, const std::string& text) {
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
      [[maybe_unused]] const Status made = files_.MakeDirectory(path.substr(0, at), 0700);
    }
    auto file = *files_.Create(path, {.replace = true});
    ASSERT_TRUE(file->Write(AsBytes(text)));
    ASSERT_TRUE(file->Close());
  }
  MemoryFiles files_;
};

TEST_F(GuessPreloadTest, LooksForTorchInEveryFormOfImport) {
  const struct {
    const char* source;
    bool torch;
  } cases[] = {
      {"import torch\n", true},
      {"import os, torch.nn as nn\r\n", true},
      {"def main():\n\tfrom torch import (\n  nn)\n", true},
      {"from lightning.pytorch import Trainer", true},
      {"import torchlight\nimport os.torch\n# import torch\n", false},
      {"text = 'import torch'\n", false},
      {"", false},
      {"from . import torch_like\nimport \nfrom import import\n", false},
  };
  for (const auto& [source, torch] : cases) {
    Put("/w/train.py", source);
    EXPECT_EQ(WantsTorch({"python3", "train.py"}), torch) << source;
    EXPECT_EQ(WantsTorch({"python3", "/w/train.py"}), torch) << source;
  }
}

TEST_F(GuessPreloadTest, FollowsModulesBesideTheProgram) {
  Put("/w/sub/train.py", "from net import Net\nimport loop.inner\n");
  EXPECT_FALSE(WantsTorch({"python3", "sub/train.py"}));
  Put("/w/sub/net.py", "import train\nfrom .parts import part\n");
  Put("/w/sub/parts/__init__.py", "import torch\n");
  EXPECT_TRUE(WantsTorch({"python3", "sub/train.py"}));
}

TEST_F(GuessPreloadTest, FindsAModuleBelowTheWorkingFolder) {
  Put("/w/pkg/train.py", "from pkg.model import Net\n");
  Put("/w/pkg/model.py", "import transformers\n");
  EXPECT_TRUE(WantsTorch({"python3", "-m", "pkg.train"}));
  EXPECT_FALSE(WantsTorch({"python3", "-m", "elsewhere.train"}));
}

TEST_F(GuessPreloadTest, ReadsTheStatementsOfCode) {
  EXPECT_TRUE(WantsTorch({"python3", "-c", "import os; import torch; print(torch.ones(1))"}));
  EXPECT_FALSE(WantsTorch({"python3", "-c", "print('import')"}));
}

TEST_F(GuessPreloadTest, LeavesWhatIsNoSourceToExec) {
  const auto is_source = [&](const Words& command) {
    return IsSource(files_, command, *ParsePython(command), "/w");
  };
  Put("/w/app/__main__.py", "import torch\n");
  Put("/w/app.pyz", std::string("#!/usr/bin/env python3\nPK\x03\x04\0\0", 29));
  Put("/w/train.py", "import torch\n");
  EXPECT_TRUE(is_source({"python3", "train.py"}));
  EXPECT_TRUE(is_source({"python3", "absent.py"}));
  EXPECT_TRUE(is_source({"python3", "-m", "app"}));
  EXPECT_FALSE(is_source({"python3", "app.pyz"}));
  EXPECT_FALSE(is_source({"python3", "/w/app"}));
}

TEST(PythonZygote, KeepsTheFlagsAndCarriesTheCommand) {
  const Words file = {"python3", "-u", "-W", "error", "t.py", "x"};
  const Words words = PythonZygote(file, *ParsePython(file), {"torch", "net"});
  EXPECT_EQ(Words(words.begin(), words.begin() + 5), (Words{"python3", "-u", "-W", "error", "-c"}));
  EXPECT_EQ(Words(words.begin() + 6, words.end()),
            (Words{"3", "file", "4", "torch,net", "python3", "-u", "-W", "error", "t.py", "x"}));

  const Words module = {"python3", "-um", "pkg"};
  const Words other = PythonZygote(module, *ParsePython(module), {"torch"});
  EXPECT_EQ(Words(other.begin(), other.begin() + 3), (Words{"python3", "-u", "-c"}));
  EXPECT_EQ(Words(other.begin() + 4, other.begin() + 8), (Words{"3", "module", "2", "torch"}));
  const Words plain = {"python3", "-m", "pkg"};
  EXPECT_EQ(PythonZygote(plain, *ParsePython(plain), {"torch"})[1], "-c");
}

}  // namespace
}  // namespace muster::agent
