// Holds the precompiled header; see torch.cmake.
