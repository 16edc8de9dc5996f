// muster report RUN: the whole run as one HTML page, or as JSON.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/absent.h"
#include "base/durable.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/write_all.h"
#include "cli/verb.h"
#include "profile/report/page/report_page.h"
#include "profile/report/report_json.h"

namespace muster::cli {
namespace {

struct ReportFlags {
  std::string folder;
  std::string output;
};

/// What tells a page of ours from another file, in its first bytes.
constexpr std::string_view kMark = "name=\"generator\" content=\"muster report\"";
constexpr std::size_t kMarkWithin = 1024;

Result<bool> IsReport(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoError("open " + path, errno);
  std::array<char, kMarkWithin> head{};
  const auto n = ::read(file.get(), head.data(), head.size());
  if (n < 0) return ErrnoError("read " + path, errno);
  return n == 0 || std::string_view(head.data(), static_cast<std::size_t>(n)).find(kMark) !=
                       std::string_view::npos;
}

/// Into a device or a pipe: nothing is made or replaced.
Status WriteThrough(const std::string& path, std::string_view page) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoError("open " + path, errno);
  const Written written = WriteAll(file.get(), AsBytes(page));
  if (written.error != 0) return ErrnoError("write " + path, written.error);
  return Ok();
}

Status WriteNewPage(const std::string& target, std::string_view page) {
  std::error_code failed;
  const std::string folder = ParentOf(target);
  if (!std::filesystem::exists(folder, failed) && !failed) {
    return Absent("folder", folder, "make it with mkdir -p, or choose another name for the page");
  }
  // Logs and configuration are in it, so it is as private as they are.
  return WriteDurably(PosixFiles(), target, TemporaryBeside(target), AsBytes(page), 0600);
}

/// An earlier page is replaced, behind a link too; any other file stays.
Status WritePage(const std::string& path, std::string_view page) {
  struct stat there{};
  std::string target = path;
  if (::stat(path.c_str(), &there) == 0) {
    if (!S_ISREG(there.st_mode)) return WriteThrough(path, page);
    if (!MUSTER_TRY(IsReport(path))) {
      return Error(Code::kAlreadyExists, path + " exists and is not a report; it was not changed",
                   "choose another name, or remove it yourself");
    }
    std::error_code failed;
    target = std::filesystem::canonical(path, failed).string();
    if (failed) return ErrnoError("follow " + path, failed.value());
  }
  return WriteNewPage(target, page);
}

Result<int> Report(const ReportFlags& flags, bool json) {
  const auto files = MUSTER_TRY(profile::RunFiles::Open(flags.folder));
  const profile::RunReport report = profile::BuildReport(MUSTER_TRY(profile::ReadRun(files)));
  const std::string output =
      flags.output.empty() && !json ? flags.folder + "/report.html" : flags.output;
  if (!output.empty()) {
    const std::string page = profile::ReportPage(report);
    MUSTER_TRY(Within("write the report", WritePage(output, page)));
    Note(fmt::format("{}\n{}wrote {}\n", PlainLine(profile::Verdict(report)),
                     report.go_on.empty() ? "" : "to go on: " + PlainLine(report.go_on) + "\n",
                     output));
  }
  if (json) MUSTER_TRY(Print(profile::ReportJson(report)));
  return 0;
}

}  // namespace

void AddReport(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "report",
                                "What happened in a run, as one HTML page or as JSON", invocation);
  auto flags = std::make_shared<ReportFlags>();
  app->add_option("RUN", flags->folder, "The run's folder")->required();
  app->add_option("-o,--output", flags->output,
                  "Where the page goes; RUN/report.html without it, none with --json alone");
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return Report(*flags, invocation.json); };
  });
}

}  // namespace muster::cli
