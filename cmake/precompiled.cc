// Holds the precompiled header; see precompiled.cmake.
