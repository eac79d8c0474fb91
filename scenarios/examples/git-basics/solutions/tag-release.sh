git tag --annotate v1.0 --message "First release"
