// The list of verbs, in the order of the help. Each AddXxx is in the file of its name.
#include "cli/verb.h"

namespace muster::cli {

void AddAgent(CLI::App& parent, Invocation& invocation);
void AddCkpt(CLI::App& parent, Invocation& invocation);
void AddData(CLI::App& parent, Invocation& invocation);
void AddDoctor(CLI::App& parent, Invocation& invocation);
void AddDump(CLI::App& parent, Invocation& invocation);
void AddExplain(CLI::App& parent, Invocation& invocation);
void AddImport(CLI::App& parent, Invocation& invocation);
void AddLogs(CLI::App& parent, Invocation& invocation);
void AddReport(CLI::App& parent, Invocation& invocation);
void AddRules(CLI::App& parent, Invocation& invocation);
void AddRun(CLI::App& parent, Invocation& invocation);
void AddShow(CLI::App& parent, Invocation& invocation);
void AddTop(CLI::App& parent, Invocation& invocation);

void AddVerbs(CLI::App& app, Invocation& invocation) {
  AddData(app, invocation);
  AddRun(app, invocation);
  AddAgent(app, invocation);
  AddTop(app, invocation);
  AddDump(app, invocation);
  AddShow(app, invocation);
  AddLogs(app, invocation);
  AddReport(app, invocation);
  AddCkpt(app, invocation);
  AddRules(app, invocation);
  AddDoctor(app, invocation);
  AddExplain(app, invocation);
  AddImport(app, invocation);
}

}  // namespace muster::cli
