#pragma once
// What became of another system's job file: a job, and where each field of that file went. Made by
// one importer per system (hyperpod.h), shown by `muster import`. Values; pure.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/document.h"
#include "spec/job.h"

namespace muster::spec {

/// One field of the other file and its fate.
struct ImportedField {
  enum class Fate {
    kTaken,      ///< it is in the job: `words` say at which key and as what
    kBeside,     ///< a job file has no place for it; `words` say how it is given instead
    kNoMeaning,  ///< nothing here corresponds to it; `words` say why
    kNotYet,     ///< it means something that Muster does not do yet: `words` say what happens
  };
  Place place;
  std::string path;   ///< "spec.runPolicy.jobMaxRetryCount"
  std::string value;  ///< short, on one line
  Fate fate = Fate::kTaken;
  std::string words;
};

/// "taken", "beside", "no meaning", "not yet".
std::string_view NameOf(ImportedField::Fate fate);

/// A variable that the other file gives to the workers. They have the environment of `muster run`.
struct ImportedVariable {
  std::string name;
  std::string value;
  bool secret = false;  ///< by its name: `value` is not shown
  Place place;
};

struct ImportedJob {
  Job job;
  std::map<std::string, std::string> sources;  ///< key of the job → field that it came from
  std::vector<ImportedField> fields;           ///< in the order of the file
  std::vector<ImportedVariable> environment;
  std::string folder;                ///< where the command is to be started; empty: anywhere
  std::vector<std::string> options;  ///< of `muster run`, behind the job file
};

/// The job file, each line with the field that it came from; above it, as comments, what a job file
/// cannot hold: variables, folder and options. `file` is the name that it will have.
std::string PrintImported(const ImportedJob& imported, std::string_view from,
                          std::string_view file);

}  // namespace muster::spec
