"""Work with OpenShift AI from Python."""
