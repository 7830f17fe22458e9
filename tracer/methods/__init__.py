"""One file a method: a function of the file's name whose signature is its flags."""
