//! The Container Network Interface protocol as data: versions, configuration, request, result, error, arguments.
