# MUSTER_SANITIZE=address|thread instruments everything that is compiled here.
if(MUSTER_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(MUSTER_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(MUSTER_SANITIZE)
  message(FATAL_ERROR "MUSTER_SANITIZE is '${MUSTER_SANITIZE}'; it takes address, thread or nothing")
endif()
if(MUSTER_FUZZ)
  # The libraries under test report coverage; each harness links libFuzzer's main.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_compile_definitions(MUSTER_FUZZING=1)
endif()

# muster_compile_quickly(TARGET): the code of tests themselves, which takes a compiler a third of the time so. What they test, and what
# the fuzzer explores, is compiled as it is.
function(muster_compile_quickly target)
  if(MUSTER_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(MUSTER_FUZZ)
    target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
endfunction()
